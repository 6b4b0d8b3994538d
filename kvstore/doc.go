// Package kvstore names every bucket, stream, key and subject of a fleet on NATS,
// and reads and writes them. The packages below it each have one bucket or stream,
// or one thing that is done with them, and know of each other at most connect,
// answer and scan. No other package imports jetstream, micro and jsm.go.
package kvstore
