export const PLACEHOLDER = 'gearman-node';
