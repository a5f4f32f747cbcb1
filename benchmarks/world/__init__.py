"""Questions about the world of `sample:world`: whether the answers of the tools hold the facts that answer them."""
