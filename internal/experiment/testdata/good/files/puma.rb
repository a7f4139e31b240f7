# settings of the command line count more
threads 2, 2
