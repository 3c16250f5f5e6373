"""The proof: what a rewrite really does to the step and to the values, tried on the program itself.

```text
    plan           which fixes there are, which need which, and the files with some of them made
      smallest     which fixes stay: the smallest set that gives the gain; set_aside keeps some from having all go apart
      search       how long the steps of versions take, in turns; budget tells what is left of the time
      compared     what versions compute, in whole runs and in one process
      runs         what each run is asked, and which files stand in for others
        processes  runs of the program, each in a process of its own that ends after so many steps
          clearing the end of all that runs have started, also where we are killed
          trial    such a process: the program under an overlay, and what is noted of it
            overlay  capture  stale     other bytes for some files · values that it reads · reads answered late
            notified     what it is about to do to files, as the kernel tells: syscalls
            audited      the same, as Python tells
              journal    what stands there before: caches, standing, copying
          unheld         what of that could not be taken back
          undo           and what stood there is there again
        one_process  versions that take turns inside of one run: in_turns is the run's side of it
        values     two runs side by side: parameters, losses, and what both read, paired
        timing     turns side by side: the ratio of the steps, and its interval
      foretold     the ratio that a recording promises
    in_the_run     the same inside of a run, which goes on as written afterwards
    asked_for      the same where the program asks for it: callers_loop is the loop in which it does
      swapped      functions that are alive, with the code of all versions for a while
      trying       what is said, and put aside, while steps are rehearsed
      offers       the fixes of its files, woven into them as these are imported
      tried        which rehearsals are wanted, and what they tell; noted: what they compute
      rehearsal    iterations of its loop, made by one version after another and put back: snapshot, kept
      aside        what they print and write
    results        what is known at the end, or when it was interrupted
```

Nothing here writes to the user's files: `syncscope verify --write` does.
"""
