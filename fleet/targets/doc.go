// Package targets compiles target expressions, which select nodes, results and packages. It type-checks an
// expression once, evaluates it for each node within limits, and finds the names that the fleet does not have.
package targets
