"""The paper: its graphs, its cells, its published numbers, and the report that compares ours with them."""
