// Package watch tells a node its assignments and control documents, without a JetStream consumer. The
// server republishes the headers of each change, and the node then reads the changed keys by direct
// get. Lost or forged announcements do no harm, because the node compares the sequences with the
// bucket at start, after each reconnect and at regular intervals.
package watch
