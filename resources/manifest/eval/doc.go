// Package eval evaluates the expressions of a document: what they may ask for, the
// templates they render, and what of it is secret.
package eval
