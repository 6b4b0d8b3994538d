// Package model holds the words of muster: resources, transactions, runs,
// assignments, reports and the documents they travel in. It is data only; it
// imports no other package of this module.
package model
