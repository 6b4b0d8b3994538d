// Package kill tests kills between any two disk operations.
package kill
