"""Selection of the rows that teach, with a reason for each row left out."""
