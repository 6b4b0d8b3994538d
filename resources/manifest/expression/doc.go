// Package expression compiles the expressions in texts, and turns what they return into values.
package expression
