// Package a is.
package a
