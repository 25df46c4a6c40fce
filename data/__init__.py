"""Survey data bundled with privrank; ``privrank.datasets`` loads them."""
