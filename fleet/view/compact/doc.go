// Package compact keeps what many nodes say in little memory: texts that are cut, values that many have in common, and
// times.
package compact
