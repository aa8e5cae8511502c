"""What turns an object of a framework into the files of a version. No framework is imported before it is needed."""
