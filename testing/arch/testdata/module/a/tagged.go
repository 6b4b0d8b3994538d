//go:build system

package a
