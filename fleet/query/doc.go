// Package query is what operators ask of a fleet as a whole: rows with values by the names of
// columns, sorted, cut and counted. It knows nodes and reports as values and asks nobody.
package query
