"""Tables, figures and pages of what runs came to, beside what the papers print."""
