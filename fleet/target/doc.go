// Package target is the language in which operators say which nodes a command is for:
// compiled and type-checked once, then evaluated for each node within bounds. It knows
// nodes as values and asks nobody.
package target
