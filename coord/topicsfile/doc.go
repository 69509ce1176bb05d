// Package topicsfile reads the file in which earlier builds kept the topics of a broker, so that coordination can take them over. Nothing writes it any
// more.
package topicsfile
