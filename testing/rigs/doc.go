// Package rigs gives tests a Debian machine of their own: a root file system
// that is built once (by debootstrap, cached under .rig in the checkout) and lent
// as an overlay in memory, with a mount and a network namespace around it, so
// that nothing a test does is left behind or reaches anything else. New gives a
// machine on which only what the test starts runs, Boot one on which systemd does.
//
// It needs root, debootstrap and for Boot systemd-container, and so all of it has
// the build tag system: go test -tags system ./...
package rigs
