"""The pictures of the internal report, a file for each kind: figures in, shapes on whole coordinates out."""
