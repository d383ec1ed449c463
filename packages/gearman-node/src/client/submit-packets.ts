/** Which of several waiting jobs of a function a server hands out first. */
export type JobPriority = 'low' | 'normal' | 'high';

/** The packet that submits a job. */
export const SUBMIT_PACKETS = {
  foreground: { low: 'SUBMIT_JOB_LOW', normal: 'SUBMIT_JOB', high: 'SUBMIT_JOB_HIGH' },
  background: { low: 'SUBMIT_JOB_LOW_BG', normal: 'SUBMIT_JOB_BG', high: 'SUBMIT_JOB_HIGH_BG' },
} as const;

export type SubmitPacket = (typeof SUBMIT_PACKETS)['foreground' | 'background'][JobPriority];
