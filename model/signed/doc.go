// Package signed defines what operators sign and how a node verifies it: statements in DSSE envelopes, keys,
// and the policy of a node. It is pure: keys, policy, earlier envelopes and the time are arguments.
package signed
