// Package bench measures muster as its users run it: whole processes, real
// files. Its figures are in docs/performance.md. Nothing in it fails a test
// because of time.
package bench
