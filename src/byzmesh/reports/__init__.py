"""Tables, figures and the HTML report. Reads stores, runs nothing."""
