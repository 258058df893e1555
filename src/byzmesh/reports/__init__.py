"""Tables, figures and the HTML report, with the published numbers to compare with. Reads stores, runs nothing."""
