// Package attack tries what someone can do who has broken into a node, or into the
// laptop of an operator, and has its credentials.
//
// A fleet of two nodes is attacked from web01, of group web; its victims are web02,
// of group db, the operators, and NATS itself. Each attack is one row of a table with
// a stable name (attacks.md lists them, docs refer to them by it). What an attack did is observed as
// facts, never by the errors it got: all streams, their configurations, messages and
// consumers before and after; what arrived where others listen; what reached the
// attacker. Anything beyond what the permissions of the attacker name is a breach.
//
// Each attack also has a control, in which it must win, so that none can fail
// unseen: against one account with the permissions that nodes had there once, as a
// user without any limits, with streams configured as muster does not, or with readers
// that believe what they read.
//
// The attackers are of the same fleet, or of a second one on the same server.
//
// The short form is what `go test` runs. With MUSTER_ATTACK=whole every answer of
// the server is sent to every target on every layout, the cluster included
// (`just attack`).
package attack
