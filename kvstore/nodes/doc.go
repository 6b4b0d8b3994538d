// Package nodes is the bucket of nodes: their states and their facts.
package nodes
