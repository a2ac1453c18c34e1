"""The grading pipeline and the judges."""
