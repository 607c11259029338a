// thread_choice: chooses, for one kind of work, between one thread and all of them. Small scenes, and machines whose
// cores other programs use, are faster with one thread. The choice changes no result.
//
// A program on one of the cores does not slow down every call: most take as long as before, and some wait for a thread
// that has lost its core for a time slice of milliseconds. So the mean over a window of several time slices decides. A
// choice is left when its windows are slower than the last measurement of the other one. The other one is measured
// from time to time, because only a measurement shows that the cores are free again.
#ifndef CQ_THREAD_CHOICE_H
#define CQ_THREAD_CHOICE_H

#include <stdint.h>

enum { CQ_CHOICE_WINDOWS = 3 };   // whose median counts, so that one disturbed window changes nothing

// calls that are measured as one
typedef struct cq_tally {
  double seconds, work;
  int32_t calls;
} cq_tally;

typedef struct cq_thread_choice {
  double alone, together;            // [s] a unit of the work with one thread, with all; 0: not measured yet
  int64_t calls;
  int32_t is_together;               // the present choice: 1 all threads, 0 one
  int32_t trial_calls;               // calls of the running trial of the other choice, with the next one; 0: no trial
  cq_tally window, trial;            // of the present choice, and of the other one
  double means[CQ_CHOICE_WINDOWS];   // [s] a unit of the work in the last windows since the last switch
  int32_t windows;                   // since the last switch
  double since_trial;                // [s] of this work since the last trial or switch
  double wait;                       // [s] from one trial to the next; 0: the first calls still take turns
  double cost;                       // [s] that the running trial has lost so far
} cq_thread_choice;

// Returns the number of threads that was faster so far, 1 or `most` (all). Starts no trial; nothing to record.
int cq_thread_choice_best(const cq_thread_choice *c, int most);
// Returns the number of threads, 1 or `most`, with which to run the next call: mostly the faster one, from time to time
// the other one for a trial. The caller then passes the time of that call to cq_thread_choice_record, unless most is 1.
int cq_thread_choice_next(cq_thread_choice *c, int most);
// Records a call that ran with `threads` threads: its amount of work, in any unit, and the time that it took.
void cq_thread_choice_record(cq_thread_choice *c, int threads, double work, double seconds);

#endif
