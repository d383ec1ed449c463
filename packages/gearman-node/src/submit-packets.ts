/** The priorities of jobs, the most urgent first. */
export const PRIORITIES = ['high', 'normal', 'low'] as const;

/** Priority of a job: a server assigns the most urgent of the waiting jobs first. */
export type JobPriority = (typeof PRIORITIES)[number];

/** The packets that submit jobs. */
export const SUBMIT_PACKETS = {
  foreground: { high: 'SUBMIT_JOB_HIGH', normal: 'SUBMIT_JOB', low: 'SUBMIT_JOB_LOW' },
  background: { high: 'SUBMIT_JOB_HIGH_BG', normal: 'SUBMIT_JOB_BG', low: 'SUBMIT_JOB_LOW_BG' },
} as const;
