"""Find the shortest way through a maze or grid with breadth-first search (BFS).

My robot vacuum must get around obstacles on a floor grid; how few moves does it need?
How do I find a way out of a labyrinth drawn with # for walls?
Starting at S and moving up, down, left or right, how many steps is it to G?
In a board game with blocked squares, what is the quickest route for my piece to the goal?
Grid pathfinding with walls, BFS with deque?
"""

from collections import deque

maze = ["S.#.", "..#.", "#...", "..#G"]


def shortest_path(maze, start, goal):
    came_from = {start: None}
    queue = deque([start])
    while queue and goal not in came_from:
        row, column = queue.popleft()
        for r, c in [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]:
            inside = 0 <= r < len(maze) and 0 <= c < len(maze[0])
            if inside and maze[r][c] != "#" and (r, c) not in came_from:
                came_from[r, c] = (row, column)
                queue.append((r, c))
    path, step = [], goal if goal in came_from else None
    while step is not None:
        path.append(step)
        step = came_from[step]
    return path[::-1]


path = shortest_path(maze, (0, 0), (3, 3))
print("Steps:", len(path) - 1)
print("Path as (row, column):", path)
