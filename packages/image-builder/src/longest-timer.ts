/** The longest time that a timer of Node's takes, in milliseconds: 24 days. */
export const LONGEST_TIMER: number = 2 ** 31 - 1;
