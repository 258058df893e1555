"""The paper: its graphs, its cells, its published numbers, and the report that holds ours beside them."""
