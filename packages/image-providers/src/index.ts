export const PLACEHOLDER = 'image-providers';
