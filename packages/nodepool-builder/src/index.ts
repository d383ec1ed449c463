export const PLACEHOLDER = 'nodepool-builder';
