/** Which of several waiting jobs a server hands out first, the most urgent first. */
export const PRIORITIES = ['high', 'normal', 'low'] as const;

/** How urgent a job is: of several that wait, the most urgent is handed out first. */
export type JobPriority = (typeof PRIORITIES)[number];

/** The packet that submits a job. */
export const SUBMIT_PACKETS = {
  foreground: { high: 'SUBMIT_JOB_HIGH', normal: 'SUBMIT_JOB', low: 'SUBMIT_JOB_LOW' },
  background: { high: 'SUBMIT_JOB_HIGH_BG', normal: 'SUBMIT_JOB_BG', low: 'SUBMIT_JOB_LOW_BG' },
} as const;
