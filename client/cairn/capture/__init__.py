"""What a training job knows of itself: code, machine, libraries, scheduler, parallel layout, trackers.

Everything here is found without help, bounded in time, and read in the background; a library is only asked where the
job has loaded it already. Whatever cannot be found is left out, never guessed.
"""
