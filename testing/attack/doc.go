// Package attack plays an attacker with the credentials of a node or of an operator.
//
// The attacker is web01 of group web. Its victims are web02 of group db, the operators, and
// NATS. Each attack is a row of a table with a stable name; attacks.md lists the rows, and docs
// refer to them. The tests judge an attack by its effects, never by its errors: streams with their
// configurations, messages and consumers before and after, messages that arrived at other users,
// and messages that reached the attacker. Every effect beyond the attacker's permissions is a breach.
//
// Each attack also has a control that the attacker must win, so a broken attack fails visibly. A
// control runs in one account with former permissions of nodes, as a user without restrictions, on
// streams with other settings, or against readers that believe all headers.
//
// The attackers belong to the same fleet or to a second fleet on the server.
//
// go test runs the short form. With MUSTER_ATTACK=whole (`just attack`), every answer of the server
// is sent to every target on every layout, clusters included.
package attack
