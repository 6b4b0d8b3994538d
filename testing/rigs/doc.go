// Package rigs gives tests a Debian machine of their own: a root file system
// that is built once (by debootstrap, cached under .rig in the checkout) and lent
// as an overlay in memory, with a mount and a network namespace around it, so
// that nothing a test does is left behind or reaches anything else.
//
// It needs root and debootstrap (apt-get install debootstrap), and so all of it
// has the build tag system: go test -tags system ./...
package rigs
