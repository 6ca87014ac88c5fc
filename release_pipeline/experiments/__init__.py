"""What the papers found, found again with this project's own code: data in, figures and pictures out, no release."""
