// Package e2e holds the scripts (txtar files for testscript) that use muster as
// its users do. The test that runs them is beside the command, in
// cmd/muster, because it runs the command's own main.
package e2e
