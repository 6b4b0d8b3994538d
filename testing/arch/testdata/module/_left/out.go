package left
