// Package scan reads many messages of a stream: by direct gets, without a consumer,
// or through one from the operator's side.
package scan
