"""The pictures of the reviewers' page: figures in, shapes on whole coordinates out."""
