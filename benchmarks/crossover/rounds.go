package main

func measureThreshold(o options, r *results) error  { return nil }
func measureBackground(o options, r *results) error { return nil }
