// Package content is what manifests name in NATS: keys of any bucket, objects of
// any store, and bundles.
package content
