// Package watch is how a node knows what is assigned to it, and what operators write about
// it. A node carries no consumer: the server republishes the headers of each change, the node
// reads what was named by direct get, and rests on neither, because it compares sequences at
// start, after each reconnect and on an audit.
package watch
