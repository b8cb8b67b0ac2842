package plain

forbidden := "no"
