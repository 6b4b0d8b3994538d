package a_test
