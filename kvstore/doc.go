// Package kvstore names every bucket, stream, key and subject of a fleet on NATS,
// and reads them with and without a consumer. The packages below it
// each have one bucket or stream, or one thing that is done with them; they do
// not know each other. No other package imports jetstream, micro and jsm.go.
package kvstore
