// Package kvstore is everything muster keeps in NATS and says over it: the
// buckets and streams and how they are provisioned, assignments and the watch
// on them, reports, the state of nodes, requests and commands, and the
// permissions of a node. It is the only package that imports jetstream, micro
// and jsm.go.
//
// A node carries no consumer: the server republishes the headers of each
// change, the node reads what was named by direct get, and rests on neither,
// because it compares sequences at start, after each reconnect and on an audit.
package kvstore
