// Package signed holds what operators sign and how a node judges it: statements in
// DSSE envelopes, keys, and the policy of a node. It is pure: keys, policy, what was
// accepted before and the time are arguments.
package signed
